/* real.h: the engine's floating-point type; the f64 build defines
 * REAL_IS_DOUBLE */
#ifndef BASE_REAL_H
#define BASE_REAL_H

#ifdef REAL_IS_DOUBLE
typedef double real;
#define REAL_SQRT sqrt
#else
typedef float real;
#define REAL_SQRT sqrtf
#endif

#endif
