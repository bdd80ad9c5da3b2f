#include "init.h"
#include "mapper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A device-mapper request with the one target it may carry. */
struct request {
	struct dm_ioctl head;
	struct dm_target_spec target;
	char parameters[1024];
};

static int control = -1;

void open_mapper(void)
{
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		fail("/dev/mapper/control");
}

static int ask(unsigned long command, const char *name, struct request *request)
{
	request->head.version[0] = DM_VERSION_MAJOR;
	request->head.data_size = sizeof *request;
	request->head.data_start = offsetof(struct request, target);
	strncpy(request->head.name, name, sizeof request->head.name - 1);
	return ioctl(control, command, request);
}

void remove_mapping(const char *name)
{
	struct request gone = { 0 };
	ask(DM_DEV_REMOVE, name, &gone);
}

static int load(const struct mapping *mapping)
{
	struct request request = { .head.flags = mapping->flags, .head.target_count = 1 };
	request.target.length = mapping->sectors;
	strncpy(request.target.target_type, mapping->type, sizeof request.target.target_type - 1);
	strncpy(request.parameters, mapping->parameters, sizeof request.parameters - 1);
	int result = ask(DM_TABLE_LOAD, mapping->name, &request);
	/* It may hold a key. */
	explicit_bzero(&request, sizeof request);
	return result;
}

int64_t make_mapping(const struct mapping *mapping)
{
	struct request create = { .head.flags = mapping->flags & DM_READONLY_FLAG };
	if (ask(DM_DEV_CREATE, mapping->name, &create) != 0)
		return -1;
	struct request resume = { .head.flags = mapping->flags & DM_READONLY_FLAG };
	if (load(mapping) == 0 && ask(DM_DEV_SUSPEND, mapping->name, &resume) == 0)
		return (int64_t)create.head.dev;
	int reason = errno;
	remove_mapping(mapping->name);
	errno = reason;
	return -1;
}
