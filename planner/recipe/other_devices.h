// Devices that `cluster.gpu` has no rates for, by name, with the figures of their data sheets: for the help that says
// how to plan for them.
#pragma once

#include <string>
#include <string_view>

namespace planwright {

// `cluster.device` for a device, as YAML: "{memory: 180, peak: 2250, ...}"; empty if it is none of these.
std::string FiguresOfDevice(std::string_view name);

}  // namespace planwright
