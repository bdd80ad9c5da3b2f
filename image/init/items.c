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
#define IOMEM_COPY NEW_ROOT ITEMS_DIRECTORY "/iomem"
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
	{ "standin", 0444 },
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

/* What the kernel takes programs for its interpreter from. It leaves out SSDTs; the command line says so. */
static const char *const ACPI_PROGRAMS[] = { "DSDT", "SSDT", "PSDT", "OSDT" };

/* One table, or several of one name, which the kernel numbers. */
static void copy_tables_named(const char *name)
{
	char from[128], to[128];
	snprintf(from, sizeof from, ACPI_TABLES "%s", name);
	snprintf(to, sizeof to, ACPI_COPIES "/%s", name);
	copy(from, to, 0444);
	for (int number = 1; number < 100; number++) {
		snprintf(from, sizeof from, ACPI_TABLES "%s%d", name, number);
		snprintf(to, sizeof to, ACPI_COPIES "/%s%d", name, number);
		if (!copy(from, to, 0444))
			break;
	}
}

/*
 * The tables with the host's programs for the kernel's interpreter, and where the guest's memory is, for the service to
 * compare.
 */
void copy_acpi_tables(void)
{
	if (mkdir(ACPI_COPIES, 0755) != 0)
		fail(ACPI_COPIES);
	for (size_t i = 0; i < sizeof ACPI_PROGRAMS / sizeof ACPI_PROGRAMS[0]; i++)
		copy_tables_named(ACPI_PROGRAMS[i]);
	copy("/proc/iomem", IOMEM_COPY, 0400);
}
