/* unwritten.h: what an assignment's functions call until they are written */
#ifndef BASE_UNWRITTEN_H
#define BASE_UNWRITTEN_H

#ifdef __cplusplus
extern "C" {
#endif

/* problem: the names of all problems that the function belongs to */
void unwritten(const char *function, const char *problem)
	__attribute__((noreturn));

/* called first, unless NULL, with the message; may return */
extern void (*unwritten_in_case)(const char *message);

#ifdef __cplusplus
}
#endif

#endif
