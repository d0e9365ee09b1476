#include "planner/cli/first/processor_settings.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/base/text/utf8.h"

namespace planwright {

const nlohmann::json* ProcessorSettings::At(const std::string& key) {
  read_.insert(key);
  return file_.Find(key);
}

void ProcessorSettings::Refuse(const std::string& key, const std::string& expected) {
  problems_.push_back(absl::StrCat(file_.Shown(key), " cannot be expressed: ", expected));
}

std::vector<std::string> ProcessorSettings::Unread() const {
  std::vector<std::string> unread;
  for (const auto& [key, value] : file_.says.items()) {
    if (!read_.contains(key) && !SettingsWithoutPixels().contains(key) && !key.starts_with("_"))
      unread.push_back(Printable(key));
  }
  return unread;
}

int64_t WholeNumber(const nlohmann::json& value) {
  constexpr double kLargest = 9007199254740992;
  const double number = value.is_number() ? value.get<double>() : 0;
  return number >= 1 && number == std::floor(number) ? static_cast<int64_t>(std::min(number, kLargest)) : 0;
}

}  // namespace planwright
