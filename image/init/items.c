#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDED_OVER "/sys/firmware/qemu_fw_cfg/by_name/opt/cmr/"
#define MAX_ITEM_BYTES (1024 * 1024)

/*
 * What the host hands over by fw_cfg. None of it is measured: the service checks the configuration against the
 * command line, and takes from the secrets only names that the configuration asks for.
 */
static const char *const ITEMS[] = { "config", "secrets" };

static void copy_item(const char *name)
{
	static char bytes[MAX_ITEM_BYTES];
	char from[128], to[128];
	snprintf(from, sizeof from, HANDED_OVER "%s/raw", name);
	snprintf(to, sizeof to, ITEMS_DIRECTORY "/%s", name);

	int source = open(from, O_RDONLY | O_CLOEXEC);
	if (source < 0 && errno == ENOENT)
		return;
	if (source < 0)
		fail(from);
	int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	if (target < 0 || fchown(target, SERVICE_ID, SERVICE_ID) != 0)
		fail(to);
	size_t total = 0;
	for (ssize_t got; (got = read(source, bytes, sizeof bytes)) != 0; total += (size_t)got) {
		if (got < 0 || total + (size_t)got > MAX_ITEM_BYTES || write(target, bytes, (size_t)got) != got)
			fail(to);
	}
	close(source);
	close(target);
}

void copy_items(void)
{
	if (mkdir(ITEMS_DIRECTORY, 0500) != 0 || chown(ITEMS_DIRECTORY, SERVICE_ID, SERVICE_ID) != 0)
		fail(ITEMS_DIRECTORY);
	for (size_t i = 0; i < sizeof ITEMS / sizeof ITEMS[0]; i++)
		copy_item(ITEMS[i]);
}
