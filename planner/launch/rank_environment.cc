#include "planner/launch/rank_environment.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"

namespace planwright {
namespace {

absl::StatusOr<HeldPort> HoldFreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  // Of all addresses, as the store listens on all of them: another program may hold the port of one address only.
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  // Addresses are shared only after the bind: the kernel then gives every launcher a port of its own.
  const int shares = 1;
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                     setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares) == 0;
  if (bound) return HeldPort(fd, ntohs(address.sin_port));
  const int error = errno;
  if (fd >= 0) close(fd);
  return absl::UnavailableError(std::string("no free port: ") + std::strerror(error));
}

}  // namespace

HeldPort::~HeldPort() {
  if (socket_ >= 0) close(socket_);
}

absl::StatusOr<World> MakeWorld(std::string address) {
  absl::StatusOr<HeldPort> port = HoldFreePort();
  if (!port.ok()) return port.status();
  char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    return absl::UnavailableError("no random bytes for the run's nonce");
  return World{std::move(address), *std::move(port), absl::BytesToHexString({bytes, sizeof bytes})};
}

Variables VariablesOf(const World& world) {
  return {{"MASTER_ADDR", world.address},
          {"MASTER_PORT", std::to_string(world.port.number())},
          {"PLANWRIGHT_NONCE", world.nonce}};
}

std::vector<std::string> RankEnvironment(const Variables& shared, const RankPlace& place,
                                         const std::vector<std::string>& inherited) {
  Variables ours = shared;
  ours["RANK"] = std::to_string(place.rank);
  ours["WORLD_SIZE"] = std::to_string(place.world_size);
  ours["LOCAL_RANK"] = std::to_string(place.local_rank);
  ours["LOCAL_WORLD_SIZE"] = std::to_string(place.local_size);
  constexpr std::string_view kOfTheAgent[] = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"};
  std::vector<std::string> environment;
  bool threads_set = false;
  for (const std::string& variable : inherited) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    threads_set |= name == "OMP_NUM_THREADS";
    const bool of_the_agent = std::find(std::begin(kOfTheAgent), std::end(kOfTheAgent), name) != std::end(kOfTheAgent);
    if (!ours.contains(name) && !of_the_agent) environment.push_back(variable);
  }
  for (const auto& [name, value] : ours) environment.push_back(name + "=" + value);
  if (!threads_set) environment.push_back("OMP_NUM_THREADS=1");
  return environment;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable; ++variable) environment.emplace_back(*variable);
  return environment;
}

}  // namespace planwright
