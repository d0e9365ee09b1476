#include "planner/wire/rendezvous/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>

namespace planwright {

absl::StatusOr<std::string> OwnAddress() {
  constexpr std::string_view kOfContainers[] = {"docker", "podman", "cni", "veth", "virbr", "br-"};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return absl::UnavailableError(std::string("the network interfaces of this machine cannot be listed: ") +
                                  std::strerror(errno));
  }
  std::string address = "127.0.0.1";
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    const bool up = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    const std::string_view name = at->ifa_name;
    if (std::any_of(std::begin(kOfContainers), std::end(kOfContainers),
                    [&](std::string_view beginning) { return name.starts_with(beginning); }))
      continue;
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
    address = text;
    break;
  }
  freeifaddrs(list);
  return address;
}

}  // namespace planwright
