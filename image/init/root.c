#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Enough for the service's files; memory is only taken as they grow. */
#define STATE_OPTIONS "mode=0700,uid=10001,gid=10001,size=50%"
#define TMP_OPTIONS "mode=0700,uid=10001,gid=10001,size=25%"

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
	/* Seen by the service, and no more to be changed. */
	if (mount(NULL, NEW_ROOT "/dev", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) != 0)
		fail(NEW_ROOT "/dev");
}

/* No debugging of one process by another, no further modules, no other kernel, no namespaces. */
static void harden_kernel(void)
{
	write_setting("/proc/sys/kernel/yama/ptrace_scope", "3");
	write_setting("/proc/sys/kernel/kptr_restrict", "2");
	write_setting("/proc/sys/kernel/dmesg_restrict", "1");
	write_setting("/proc/sys/kernel/unprivileged_bpf_disabled", "1");
	write_setting("/proc/sys/kernel/kexec_load_disabled", "1");
	write_setting("/proc/sys/kernel/core_pattern", "/dev/null");
	write_setting("/proc/sys/user/max_user_namespaces", "0");
	write_setting("/proc/sys/fs/nr_open", "1048576");
	/* The one port that is open to the outside; the service has no right of root to take it. */
	write_setting("/proc/sys/net/ipv4/ip_unprivileged_port_start", "443");
	write_setting("/proc/sys/kernel/modules_disabled", "1");
}

/*
 * Fills the verified root's mount points, hands over what came from the host, and makes it the root. Of /sys the
 * service sees the report interface alone; /proc/sys can be read and not written.
 */
void enter_root(void)
{
	mount_at("tmpfs", NEW_ROOT "/run", MS_NODEV | MS_NOEXEC, "mode=0755,size=8m");
	mount_at("tmpfs", NEW_ROOT "/tmp", MS_NODEV | MS_NOEXEC, TMP_OPTIONS);
	mount_at("tmpfs", NEW_ROOT "/var/lib/cmr", MS_NODEV | MS_NOEXEC, STATE_OPTIONS);
	make_devices();
	copy_items();
	start_network();
	harden_kernel();
	mount_at("configfs", NEW_ROOT "/sys/kernel/config", MS_NODEV | MS_NOEXEC, NULL);
	mount_at("proc", NEW_ROOT "/proc", MS_NODEV | MS_NOEXEC, NULL);
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
