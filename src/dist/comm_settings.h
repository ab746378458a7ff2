/* comm_settings.h: settings of a communicator and its transport */
#ifndef DIST_COMM_SETTINGS_H
#define DIST_COMM_SETTINGS_H

#include <stdbool.h>

typedef struct CommSettings {
	const char *transport;           /* of TRANSPORTS; NULL: auto */
	bool pushes;                     /* auto takes push, where it can work */
	int limit_s;                     /* most time of a collective; 0: 30 s */
	/* thread blocks of NCCL's kernels, 0: NCCL's choice; of the kernels that sum
	 * after pushes, 0: 8 */
	int ctas;
	/* before each collective the queue sleeps for a random time up to this */
	int delay_us;
	/* OPERATION_TEXT bytes in which the rank says what it does, for its parent;
	 * NULL: it tells nobody */
	char *doing;
} CommSettings;

#endif
