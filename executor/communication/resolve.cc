#include "executor/communication/resolve.h"

#include <absl/strings/str_cat.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "planner/wire/connection/socket_address.h"

namespace planwright::executor {
namespace {

using Clock = std::chrono::steady_clock;
using Addresses = std::vector<std::string>;

absl::StatusOr<Addresses> ResolveOnce(const std::string& host) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0)
    return absl::UnavailableError(error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error));
  Addresses addresses;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::find(addresses.begin(), addresses.end(), text) == addresses.end()) addresses.emplace_back(text);
  }
  freeaddrinfo(list);
  if (addresses.empty()) return absl::UnavailableError("it has no address");
  return addresses;
}

}  // namespace

absl::StatusOr<Addresses> Resolve(const std::string& host, std::chrono::milliseconds patience) {
  if (SocketAddress::Parse(host, 0).ok()) return Addresses{host};
  const Clock::time_point deadline = Clock::now() + patience;
  std::chrono::milliseconds pause(50);
  absl::Status last;
  for (;;) {
    // getaddrinfo has no time-out. If it hangs, its thread is left behind.
    auto answer = std::make_shared<std::promise<absl::StatusOr<Addresses>>>();
    std::future<absl::StatusOr<Addresses>> result = answer->get_future();
    std::thread([answer, host] { answer->set_value(ResolveOnce(host)); }).detach();
    if (result.wait_until(deadline) != std::future_status::ready) {
      last = absl::UnavailableError("name service does not answer");
      break;
    }
    absl::StatusOr<Addresses> addresses = result.get();
    if (addresses.ok()) return addresses;
    last = addresses.status();
    if (Clock::now() + pause >= deadline) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(1000));
  }
  return absl::UnavailableError(absl::StrCat("the host '", host, "' is not found: ", last.message()));
}

}  // namespace planwright::executor
