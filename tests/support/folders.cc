#include "tests/support/folders.h"

namespace planwright {
namespace {

std::string Inside(const std::string& folder, const std::string& path) {
  return path.empty() ? folder : folder + "/" + path;
}

}  // namespace

std::string InSource(const std::string& path) { return Inside(PLANWRIGHT_SOURCE_DIR, path); }

std::string InBuild(const std::string& path) { return Inside(PLANWRIGHT_BINARY_DIR, path); }

}  // namespace planwright
