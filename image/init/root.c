#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Enough for the service's files; memory is only taken as they grow. */
#define STATE_OPTIONS "mode=0711,size=50%"
#define TMP_OPTIONS "mode=1777,size=25%"

/* All of /dev that the service sees. */
static const struct {
	const char *path;
	unsigned int minor;
} DEVICES[] = {
	{ NEW_ROOT "/dev/null", 3 }, { NEW_ROOT "/dev/zero", 5 },    { NEW_ROOT "/dev/full", 7 },
	{ NEW_ROOT "/dev/random", 8 }, { NEW_ROOT "/dev/urandom", 9 },
};

static void mount_at(const char *type, const char *target, unsigned long flags, const char *options)
{
	if (mount(type, target, type, flags | MS_NOSUID, options) != 0)
		fail(target);
}

static void make_devices(void)
{
	mount_at("tmpfs", NEW_ROOT "/dev", MS_NOEXEC, "mode=0755,size=64k");
	mode_t before = umask(0);
	for (size_t i = 0; i < sizeof DEVICES / sizeof DEVICES[0]; i++)
		if (mknod(DEVICES[i].path, S_IFCHR | 0666, makedev(1, DEVICES[i].minor)) != 0)
			fail(DEVICES[i].path);
	umask(before);
	prepare_volume();
	open_power_button();
	/* Seen by the service, and no more to be changed. */
	if (mount(NULL, NEW_ROOT "/dev", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) != 0)
		fail(NEW_ROOT "/dev");
}

/* One directory for each account; the supervisor's can be passed through, and not read, by the two others. */
static const struct {
	const char *path;
	uid_t owner;
	mode_t mode;
} STATE[] = {
	{ NEW_ROOT "/var/lib/cmr", SUPERVISOR_ID, 0711 },
	{ NEW_ROOT "/var/lib/cmr/enclave", DAEMON_ID, 0700 },
	{ NEW_ROOT LEDGER_DIRECTORY, WORKER_ID, 0700 },
};

static void make_state(void)
{
	mount_at("tmpfs", STATE[0].path, MS_NODEV | MS_NOEXEC, STATE_OPTIONS);
	for (size_t i = 0; i < sizeof STATE / sizeof STATE[0]; i++)
		if ((i > 0 && mkdir(STATE[i].path, 0700) != 0) ||
		    chown(STATE[i].path, STATE[i].owner, STATE[i].owner) != 0 ||
		    chmod(STATE[i].path, STATE[i].mode) != 0)
			fail(STATE[i].path);
}

/*
 * Fills the verified root's mount points, hands over what came from the host, and makes it the root. Of /sys the
 * service sees the report interface alone; /proc/sys can be read and not written.
 */
void enter_root(void)
{
	mount_at("tmpfs", NEW_ROOT "/run", MS_NODEV | MS_NOEXEC, "mode=0755,size=8m");
	mount_at("tmpfs", NEW_ROOT "/tmp", MS_NODEV | MS_NOEXEC, TMP_OPTIONS);
	make_state();
	copy_items();
	copy_acpi_tables();
	make_devices();
	start_network();
	harden_kernel();
	mount_at("configfs", NEW_ROOT "/sys/kernel/config", MS_NODEV | MS_NOEXEC, NULL);
	/* An account sees its own processes alone. */
	mount_at("proc", NEW_ROOT "/proc", MS_NODEV | MS_NOEXEC, "hidepid=invisible");
	if (mount(NEW_ROOT "/proc/sys", NEW_ROOT "/proc/sys", NULL, MS_BIND, NULL) != 0 ||
	    mount(NULL, NEW_ROOT "/proc/sys", NULL,
		  MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
		fail("/proc/sys");

	if (umount2("/sys", MNT_DETACH) != 0 || umount2("/proc", MNT_DETACH) != 0 ||
	    umount2("/dev", MNT_DETACH) != 0)
		fail("what the old root had mounted");
	if (chdir(NEW_ROOT) != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
	    chdir("/") != 0)
		fail("the new root");
}
