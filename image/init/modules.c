#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/module.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Loads the modules that /modules/order names, one a line, in that order. One with "?" before it is for hardware
 * that may be absent. The kernel unpacks them and checks their signature.
 */
void load_modules(void)
{
	static char order[4096];
	if (read_text("/modules/order", order, sizeof order) < 0)
		fail("/modules/order");
	char *rest = order;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		int optional = line[0] == '?';
		char path[256];
		snprintf(path, sizeof path, "/modules/%s", line + optional);
		int file = open(path, O_RDONLY | O_CLOEXEC);
		if (file < 0)
			fail(path);
		long done = syscall(SYS_finit_module, file, "", MODULE_INIT_COMPRESSED_FILE);
		if (done != 0 && !optional)
			fail(path);
		close(file);
	}
}
