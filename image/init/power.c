#include "init.h"

#include <fcntl.h>
#include <linux/input.h>
#include <stdio.h>
#include <unistd.h>

#define MOST_DEVICES 16

static int devices[MOST_DEVICES];
static size_t count;

/* Any input device may be the button; there are few, and nothing but the key for power is looked at. */
void open_power_button(void)
{
	for (int number = 0; number < MOST_DEVICES; number++) {
		char path[64];
		snprintf(path, sizeof path, "/dev/input/event%d", number);
		int device = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (device >= 0)
			devices[count++] = device;
	}
}

size_t watch_power_button(struct pollfd *watched, size_t room)
{
	size_t used = 0;
	for (; used < count && used < room; used++)
		watched[used] = (struct pollfd){ .fd = devices[used], .events = POLLIN };
	return used;
}

int pressed(int file)
{
	struct input_event event;
	int found = 0;
	while (read(file, &event, sizeof event) == (ssize_t)sizeof event)
		found |= event.type == EV_KEY && event.code == KEY_POWER && event.value == 1;
	return found;
}
