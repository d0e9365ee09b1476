// How messages call the program that makes shards of token ids, so that what they show can be typed.
#pragma once

#include <filesystem>
#include <string>

namespace planwright {

// "prepare" where a file of this name lies beside `program`, as in bin of a package; "./dev prepare" in the source.
// Empty: the program that runs.
std::string PrepareCommand(const std::filesystem::path& program = {});

}  // namespace planwright
