#include "planner/run/measure/this_machine.h"

#include <unistd.h>

#include <ctime>

#include "absl/strings/str_format.h"

namespace planwright {

std::string HostsText(int hosts) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return absl::StrFormat("%d %s, %d %s%s, %.0f GB%s", hosts, hosts == 1 ? "host" : "hosts", cores,
                         cores == 1 ? "core" : "cores", hosts == 1 ? "" : " each", memory / 1e9,
                         hosts == 1 ? "" : " each");
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return absl::StrFormat("%04d-%02d-%02d", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

}  // namespace planwright
