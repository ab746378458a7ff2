#include "dist/link.h"

void link_close(Link **link)
{
	if (*link)
		(*link)->close(*link);
	*link = NULL;
}
