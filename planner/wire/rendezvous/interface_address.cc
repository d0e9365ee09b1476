#include "planner/wire/rendezvous/interface_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planwright {
namespace {

struct Interface {
  bool up = false, has_ipv6 = false;
  std::vector<std::string> addresses;  // IPv4
};

std::string Describe(const std::string& name, const Interface& interface) {
  return absl::StrCat(name, " (",
                      !interface.up                  ? "down"
                      : !interface.addresses.empty() ? absl::StrJoin(interface.addresses, ", ")
                      : interface.has_ipv6           ? "only IPv6"
                                                     : "no address",
                      ")");
}

}  // namespace

absl::StatusOr<std::string> InterfaceAddress(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the network interfaces of this machine cannot be listed: ", std::strerror(errno)));
  }
  std::map<std::string, Interface> all;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    Interface& one = all[at->ifa_name];
    one.up |= (at->ifa_flags & IFF_UP) != 0;
    if (at->ifa_addr == nullptr) continue;
    one.has_ipv6 |= at->ifa_addr->sa_family == AF_INET6;
    if (at->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
    one.addresses.emplace_back(text);
  }
  freeifaddrs(list);
  const auto found = all.find(interface);
  if (found != all.end() && found->second.up && !found->second.addresses.empty()) return found->second.addresses[0];
  std::vector<std::string> others;
  for (const auto& [name, one] : all) others.push_back(Describe(name, one));
  const std::string problem = found == all.end() ? absl::StrCat("there is no network interface '", interface, "'")
                              : !found->second.up
                                  ? absl::StrCat("the network interface '", interface, "' is down")
                                  : absl::StrCat("the network interface '", interface, "' has no IPv4 address");
  return absl::InvalidArgumentError(
      absl::StrCat(problem, "; this machine has ", others.empty() ? "none" : absl::StrJoin(others, ", ")));
}

}  // namespace planwright
