/* choices.h: enumeration, names and choices of an option, made of one list, as
 * #define SUMS_OF(FIRST, NEXT) FIRST(BY_COMM, "comm") NEXT(BY_STEP, "step") */
#ifndef BASE_CHOICES_H
#define BASE_CHOICES_H

/* CHOICES(SUMS_OF): "comm|step"; enum { CHOICE_IDS(SUMS_OF) NSUMS };
 * names[] = { CHOICE_NAMES(SUMS_OF) } */
#define CHOICES(OF)      OF(CHOICE_FIRST, CHOICE_NEXT)
#define CHOICE_IDS(OF)   OF(CHOICE_ID, CHOICE_ID)
#define CHOICE_NAMES(OF) OF(CHOICE_NAME, CHOICE_NAME)
/* what one entry becomes */
#define CHOICE_FIRST(id, name, ...) name
#define CHOICE_NEXT(id, name, ...)  "|" name
#define CHOICE_ID(id, ...)          id,
#define CHOICE_NAME(id, name, ...)  name,

#endif
