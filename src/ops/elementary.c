#include "ops/elementary.h"

#include "ops/array.h"

static const int operands[NOPCODES] = {
#define OPCODE(NAME, OPERANDS, FORMULA) [E_##NAME] = OPERANDS,
#include "ops/opcodes.h"
#undef OPCODE
};

int opcode_operands(Opcode op)
{
	return operands[op];
}

Array elementary_scratch(Device *d, size_t n, const char *what)
{
	if (d->deferral == NULL)
		return array_new(d, n, TYPE_REAL, MEM_TEMPORARY, what);
	size_t nbytes = n * d->backend->width(TYPE_REAL);
	return (Array){ d->deferral->scratch(d->deferral, nbytes, what), TYPE_REAL };
}
