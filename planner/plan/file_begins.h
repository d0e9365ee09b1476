// What a file is, by its first bytes: for a program that must not replace a file that is something else.
#pragma once

#include <string_view>

namespace planwright {

// Whether a file that begins so is a plan (plan_json.h), or a profile of a device (device_profile.h), of any version.
bool BeginsPlan(std::string_view head);
bool BeginsProfile(std::string_view head);

}  // namespace planwright
