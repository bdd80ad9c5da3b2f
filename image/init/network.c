#include "init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NETWORK_ITEM "/sys/firmware/qemu_fw_cfg/by_name/opt/cmr/network/raw"
#define RESOLVER NEW_ROOT "/run/resolv.conf"

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	errno = 0;
	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		fail("the network item holds something that is no IPv4 address");
	return address;
}

static void set(int socket, unsigned long command, const char *name, const struct sockaddr_in *address)
{
	struct ifreq request = { 0 };
	strcpy(request.ifr_name, name);
	if (address != NULL)
		memcpy(&request.ifr_addr, address, sizeof *address);
	else
		request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(socket, command, &request) != 0)
		fail(name);
}

static void write_resolver(const char *server)
{
	FILE *file = fopen(RESOLVER, "we");
	if (file == NULL || fprintf(file, "nameserver %s\n", server) < 0 || fclose(file) != 0)
		fail(RESOLVER);
}

/*
 * Brings up loopback and eth0. The network is the host's in any case, so its addresses come from the host, unmeasured:
 * "address/prefix gateway name-server", all IPv4.
 */
void start_network(void)
{
	char text[128], address[16], gateway[16], server[16];
	unsigned int prefix = 0;
	if (read_text(NETWORK_ITEM, text, sizeof text) < 0)
		fail("the host gave no network item (fw_cfg opt/cmr/network)");
	errno = 0;
	if (sscanf(text, "%15[0-9.]/%2u %15[0-9.] %15[0-9.]", address, &prefix, gateway, server) != 4 ||
	    prefix < 1 || prefix > 32)
		fail("the network item is not \"address/prefix gateway name-server\"");

	int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (socket_ < 0)
		fail("socket");
	struct sockaddr_in own = address_of(address);
	struct sockaddr_in mask = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(~0u << (32 - prefix)) };
	struct sockaddr_in next = address_of(gateway);
	address_of(server);

	set(socket_, SIOCSIFFLAGS, "lo", NULL);
	set(socket_, SIOCSIFADDR, "eth0", &own);
	set(socket_, SIOCSIFNETMASK, "eth0", &mask);
	set(socket_, SIOCSIFFLAGS, "eth0", NULL);

	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct sockaddr_in everywhere = { .sin_family = AF_INET };
	memcpy(&route.rt_dst, &everywhere, sizeof everywhere);
	memcpy(&route.rt_genmask, &everywhere, sizeof everywhere);
	memcpy(&route.rt_gateway, &next, sizeof next);
	if (ioctl(socket_, SIOCADDRT, &route) != 0)
		fail("the default route");
	close(socket_);
	write_resolver(server);
}
