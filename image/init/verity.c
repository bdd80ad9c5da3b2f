#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define DISK "/dev/vda"
#define VERIFIED "/dev/dm-0"
#define BLOCK_BYTES 4096
#define SECTORS_PER_BLOCK (BLOCK_BYTES / 512)
#define HASH_DIGITS 64
#define WAIT_MS 30000

/* A device-mapper request with the one target it may carry. */
struct request {
	struct dm_ioctl head;
	struct dm_target_spec target;
	char parameters[1024];
};

static void ask(int control, unsigned long command, struct request *request)
{
	request->head.version[0] = DM_VERSION_MAJOR;
	request->head.data_size = sizeof *request;
	request->head.data_start = offsetof(struct request, target);
	strcpy(request->head.name, "cmr-root");
	if (ioctl(control, command, request) != 0)
		fail("device mapper");
}

static void wait_for(const char *path)
{
	for (int waited = 0; access(path, F_OK) != 0; waited += 10) {
		if (waited >= WAIT_MS)
			fail(path);
		usleep(10000);
	}
}

static int is_hex(const char *text)
{
	return strlen(text) == HASH_DIGITS && strspn(text, "0123456789abcdef") == HASH_DIGITS;
}

/*
 * Mounts the root file system from a disk of the host's. Every block of it is checked against the root hash on the
 * measured command line when it is read; one wrong block stops the kernel.
 */
void open_verified_root(void)
{
	char hash[HASH_DIGITS + 1] = "", blocks_text[16];
	need_argument("cmr.root", hash, sizeof hash);
	need_argument("cmr.root_blocks", blocks_text, sizeof blocks_text);
	unsigned long blocks = strtoul(blocks_text, NULL, 10);
	errno = 0;
	if (!is_hex(hash) || blocks == 0)
		fail("cmr.root is no SHA-256, or cmr.root_blocks no number");

	wait_for(DISK);
	int control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		fail("/dev/mapper/control");

	struct request create = { .head.flags = DM_READONLY_FLAG };
	ask(control, DM_DEV_CREATE, &create);

	/* The hash tree lies behind the data and one block of description, which nothing here reads. */
	struct request load = { .head.flags = DM_READONLY_FLAG, .head.target_count = 1 };
	load.target.length = blocks * SECTORS_PER_BLOCK;
	strcpy(load.target.target_type, "verity");
	snprintf(load.parameters, sizeof load.parameters,
		 "1 " DISK " " DISK " %d %d %lu %lu sha256 %s - 1 panic_on_corruption",
		 BLOCK_BYTES, BLOCK_BYTES, blocks, blocks + 1, hash);
	ask(control, DM_TABLE_LOAD, &load);

	struct request resume = { .head.flags = DM_READONLY_FLAG };
	ask(control, DM_DEV_SUSPEND, &resume);
	close(control);

	wait_for(VERIFIED);
	if (mkdir(NEW_ROOT, 0755) != 0 && errno != EEXIST)
		fail(NEW_ROOT);
	if (mount(VERIFIED, NEW_ROOT, "squashfs", MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) != 0)
		fail("the root file system");
}
