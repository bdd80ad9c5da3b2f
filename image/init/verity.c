#include "init.h"
#include "mapper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define DISK "/dev/vda"
#define VERIFIED "/dev/dm-0"
#define BLOCK_BYTES 4096
#define SECTORS_PER_BLOCK (BLOCK_BYTES / 512)
#define HASH_DIGITS 64
#define WAIT_MS 30000

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
 * measured command line when it is read; one wrong block, or one that cannot be read, stops the kernel.
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
	/* The hash tree lies behind the data and one block of description, which nothing here reads. */
	char parameters[512];
	snprintf(parameters, sizeof parameters,
		 "1 " DISK " " DISK " %d %d %lu %lu sha256 %s - 2 panic_on_corruption panic_on_error",
		 BLOCK_BYTES, BLOCK_BYTES, blocks, blocks + 1, hash);
	struct mapping root = { "cmr-root", "verity", parameters, blocks * SECTORS_PER_BLOCK, DM_READONLY_FLAG };
	if (make_mapping(&root) < 0)
		fail("device mapper");

	wait_for(VERIFIED);
	if (mkdir(NEW_ROOT, 0755) != 0 && errno != EEXIST)
		fail(NEW_ROOT);
	if (mount(VERIFIED, NEW_ROOT, "squashfs", MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) != 0)
		fail("the root file system");
}
