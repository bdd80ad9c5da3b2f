/* The kernel's device mapper. */
#ifndef MAPPER_H
#define MAPPER_H

#include <linux/dm-ioctl.h>
#include <stdint.h>

/* One target that fills a mapped device. */
struct mapping {
	/* Of the mapped device, at most 31 characters. */
	const char *name;
	/* Of the target. */
	const char *type;
	const char *parameters;
	/* Length of the device. */
	uint64_t sectors;
	/* DM_READONLY_FLAG, DM_SECURE_DATA_FLAG. */
	uint32_t flags;
};

/* Makes the device and returns its number, or -1 with errno set; nothing is left behind then. */
int64_t make_mapping(const struct mapping *mapping);

void remove_mapping(const char *name);

#endif
