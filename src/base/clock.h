/* clock.h: the host's clock */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* never goes back; its zero means nothing */
double clock_ms(void);

#endif
