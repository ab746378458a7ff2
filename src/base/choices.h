/* choices.h: enumeration, names and choices of an option, made of one list, as
 * #define WIRES_OF(FIRST, NEXT) FIRST(IN_FP32, "fp32") NEXT(IN_BF16, "bf16") */
#ifndef BASE_CHOICES_H
#define BASE_CHOICES_H

/* CHOICES(WIRES_OF): "fp32|bf16"; enum { CHOICE_IDS(WIRES_OF) NWIRES };
 * names[] = { CHOICE_NAMES(WIRES_OF) } */
#define CHOICES(OF)      OF(CHOICE_FIRST, CHOICE_NEXT)
#define CHOICE_IDS(OF)   OF(CHOICE_ID, CHOICE_ID)
#define CHOICE_NAMES(OF) OF(CHOICE_NAME, CHOICE_NAME)
/* what one entry becomes */
#define CHOICE_FIRST(id, name, ...) name
#define CHOICE_NEXT(id, name, ...)  "|" name
#define CHOICE_ID(id, ...)          id,
#define CHOICE_NAME(id, name, ...)  name,

#endif
