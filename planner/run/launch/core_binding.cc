#include "planner/run/launch/core_binding.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>

namespace planwright {
namespace {

// "0-3,8" of the kernel.
std::vector<int> NumbersOf(std::string_view list) {
  std::vector<int> numbers;
  while (!list.empty()) {
    int first = 0, last = 0;
    auto end = std::from_chars(list.data(), list.data() + list.size(), first);
    if (end.ec != std::errc()) break;
    list.remove_prefix(end.ptr - list.data());
    last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      end = std::from_chars(list.data(), list.data() + list.size(), last);
      if (end.ec != std::errc()) break;
      list.remove_prefix(end.ptr - list.data());
    }
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    if (!list.starts_with(',')) break;
    list.remove_prefix(1);
  }
  return numbers;
}

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// "GPU-8f1d...", as the driver tells it; empty: it does not.
std::string UuidOf(const std::string& folder_of_gpu) {
  std::ifstream file(folder_of_gpu + "/information");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("GPU UUID:")) return line.substr(std::min(line.find("GPU-"), line.size()));
  }
  return "";
}

// The GPU that an entry of CUDA_VISIBLE_DEVICES names, by its number or the begin of its UUID; empty: an unknown one.
std::string AddressOf(std::string_view entry, const std::vector<std::string>& addresses, const std::string& folder) {
  size_t number = 0;
  const auto end = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (end.ec == std::errc() && end.ptr == entry.data() + entry.size())
    return number < addresses.size() ? addresses[number] : "";
  if (!entry.starts_with("GPU-")) return "";
  const auto found = std::find_if(addresses.begin(), addresses.end(), [&](const std::string& address) {
    return UuidOf(folder + address).starts_with(entry);
  });
  return found == addresses.end() ? "" : *found;
}

std::vector<std::string> VisibleAddresses(std::string_view visible, const std::vector<std::string>& addresses,
                                          const std::string& folder) {
  std::vector<std::string> chosen;
  while (!visible.empty()) {
    const size_t comma = std::min(visible.find(','), visible.size());
    chosen.push_back(AddressOf(visible.substr(0, comma), addresses, folder));
    visible.remove_prefix(std::min(comma + 1, visible.size()));
  }
  return chosen;
}

// The part of `cores` with number `part` of `parts`.
std::vector<int> PartOf(const std::vector<int>& cores, size_t part, size_t parts) {
  return {cores.begin() + cores.size() * part / parts, cores.begin() + cores.size() * (part + 1) / parts};
}

}  // namespace

std::vector<int> OwnCores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<int> NodesOfGpus(const std::optional<std::string>& visible, const std::string& root) {
  const std::string folder = root + "/proc/driver/nvidia/gpus/";
  std::vector<std::string> addresses;  // on the PCI bus, such as 0000:1b:00.0
  std::error_code error;
  for (const auto& gpu : std::filesystem::directory_iterator(folder, error)) addresses.push_back(gpu.path().filename());
  std::sort(addresses.begin(), addresses.end());
  std::vector<int> nodes;
  for (const std::string& address : visible ? VisibleAddresses(*visible, addresses, folder) : addresses) {
    const std::vector<int> node = NumbersOf(FirstLine(root + "/sys/bus/pci/devices/" + address + "/numa_node"));
    nodes.push_back(node.empty() ? -1 : node[0]);
  }
  return nodes;
}

std::vector<int> CoresOfNode(int node, const std::string& root) {
  if (node < 0) return {};
  return NumbersOf(FirstLine(root + "/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"));
}

std::vector<std::vector<int>> DivideCores(const std::vector<int>& cores, int ranks,
                                          const std::vector<std::vector<int>>& cores_of_gpus) {
  if (ranks < 1 || cores.size() < static_cast<size_t>(ranks)) return {};
  const size_t count = ranks;
  std::vector<std::vector<int>> parts;
  for (size_t rank = 0; rank < count; ++rank) parts.push_back(PartOf(cores, rank, count));
  if (cores_of_gpus.size() < count) return parts;
  std::map<std::vector<int>, std::vector<size_t>> ranks_near;  // by the cores of their GPU
  for (size_t rank = 0; rank < count; ++rank) ranks_near[cores_of_gpus[rank]].push_back(rank);
  std::vector<std::vector<int>> near(count);
  for (const auto& [of_node, ranks_of_node] : ranks_near) {
    std::vector<int> usable;
    std::set_intersection(of_node.begin(), of_node.end(), cores.begin(), cores.end(), std::back_inserter(usable));
    if (usable.size() < ranks_of_node.size()) return parts;
    for (size_t i = 0; i < ranks_of_node.size(); ++i) near[ranks_of_node[i]] = PartOf(usable, i, ranks_of_node.size());
  }
  return near;
}

std::vector<std::vector<int>> BindRanks(int ranks, bool gpus) {
  if (!gpus) return {};
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::vector<int>> cores_of_gpus;
  for (const int node : NodesOfGpus(visible ? std::optional<std::string>(visible) : std::nullopt))
    cores_of_gpus.push_back(CoresOfNode(node));
  return DivideCores(OwnCores(), ranks, cores_of_gpus);
}

}  // namespace planwright
