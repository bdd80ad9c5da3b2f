#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDED_OVER "/sys/firmware/qemu_fw_cfg/by_name/opt/cmr/"
#define ACPI_TABLES "/sys/firmware/acpi/tables/"
#define ACPI_COPIES NEW_ROOT ITEMS_DIRECTORY "/acpi"
#define MAX_ITEM_BYTES (1024 * 1024)

/*
 * What the host hands over by fw_cfg. None of it is measured: the service checks the configuration against the
 * command line, the release's files are signed, secrets
 * are refused in production, and a simulated chip proves nothing anyway.
 */
static const struct {
	const char *name;
	mode_t mode;
} ITEMS[] = {
	{ "config", 0444 }, { "bundle", 0444 }, { "manifest", 0444 }, { "secrets", 0400 },
	{ "simulated-chip", 0444 },
	{ "standin-port", 0444 },
};

/* Copies a file that the supervisor may read. Returns 0 where there is none. */
static int copy(const char *from, const char *to, mode_t mode)
{
	static char bytes[64 * 1024];
	int source = open(from, O_RDONLY | O_CLOEXEC);
	if (source < 0 && errno == ENOENT)
		return 0;
	if (source < 0)
		fail(from);
	int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (target < 0 || fchown(target, SUPERVISOR_ID, SUPERVISOR_ID) != 0)
		fail(to);
	size_t total = 0;
	for (ssize_t got; (got = read(source, bytes, sizeof bytes)) != 0; total += (size_t)got) {
		errno = got < 0 ? errno : EFBIG;
		if (got < 0 || total + (size_t)got > MAX_ITEM_BYTES || write(target, bytes, (size_t)got) != got)
			fail(to);
	}
	close(source);
	close(target);
	return 1;
}

void copy_items(void)
{
	if (mkdir(NEW_ROOT ITEMS_DIRECTORY, 0755) != 0)
		fail(ITEMS_DIRECTORY);
	for (size_t i = 0; i < sizeof ITEMS / sizeof ITEMS[0]; i++) {
		char from[128], to[128];
		snprintf(from, sizeof from, HANDED_OVER "%s/raw", ITEMS[i].name);
		snprintf(to, sizeof to, NEW_ROOT ITEMS_DIRECTORY "/%s", ITEMS[i].name);
		copy(from, to, ITEMS[i].mode);
	}
}

/* The tables with the host's programs for the kernel's interpreter, for the service to look through. */
void copy_acpi_tables(void)
{
	if (mkdir(ACPI_COPIES, 0755) != 0)
		fail(ACPI_COPIES);
	copy(ACPI_TABLES "DSDT", ACPI_COPIES "/DSDT", 0444);
	char from[128], to[128];
	for (int number = 1; number < 100; number++) {
		/* The kernel numbers tables of one name where there are several. */
		snprintf(from, sizeof from, ACPI_TABLES "SSDT%d", number);
		snprintf(to, sizeof to, ACPI_COPIES "/SSDT%d", number);
		if (!copy(from, to, 0444))
			break;
	}
	copy(ACPI_TABLES "SSDT", ACPI_COPIES "/SSDT", 0444);
}
