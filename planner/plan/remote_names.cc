#include "planner/plan/remote_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace planwright {
namespace {

bool IsWordOfHub(std::string_view word) {
  return !word.empty() && word[0] != '.' && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

// The last part of a path that can be a folder's name.
std::string LastWord(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view word = path.substr(path.rfind('/') + 1);
  return IsWordOfHub(word) ? std::string(word) : "FOLDER";
}

std::string Fetched(const std::string& key, const std::string& command, const std::string& folder) {
  return "fetch it: " + command + ", and write " + key + ": " + folder;
}

}  // namespace

std::string NotMounted(const std::string& path) {
  if (path.starts_with('~')) return "~ is not read: write the path of the folder";
  const size_t colon = path.find("://");
  if (colon == std::string::npos || path.find('/') < colon) return "";
  return "object stores and URLs are not read: mount the store, and write the path of the file";
}

bool MayBeHubName(const std::string& name) {
  const size_t slash = name.find('/');
  return slash != std::string::npos && IsWordOfHub(std::string_view(name).substr(0, slash)) &&
         IsWordOfHub(std::string_view(name).substr(slash + 1)) && !name.ends_with(".safetensors");
}

bool LooksLikeHubName(const std::string& name) {
  if (!MayBeHubName(name)) return false;
  const size_t slash = name.find('/');
  const auto is = [&](size_t at, int (*kind)(int)) { return kind(static_cast<unsigned char>(name[at])) != 0; };
  for (size_t i = slash + 1; i + 1 < name.size(); ++i) {
    const bool unit = std::string_view("bBmM").find(name[i + 1]) != std::string_view::npos;
    if (is(i, std::isdigit) && unit && (i + 2 == name.size() || !is(i + 2, std::isalnum))) return true;
  }
  const std::string_view word = std::string_view(name).substr(slash + 1);
  return is(slash + 1, std::isalpha) && word.find('-') != std::string_view::npos &&
         std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c); });
}

std::string HowToFetch(const std::string& key, const std::string& name) {
  constexpr std::string_view kHub[] = {"hf://", "https://huggingface.co/", "http://huggingface.co/"};
  for (const std::string_view begin : kHub) {
    if (name.starts_with(begin) && MayBeHubName(name.substr(begin.size())))
      return HowToFetch(key, name.substr(begin.size()));
  }
  const std::string folder = LastWord(name);
  if (MayBeHubName(name)) return Fetched(key, "hf download " + name + " --local-dir " + folder, folder);
  if (name.starts_with("s3://")) return Fetched(key, "aws s3 sync " + name + " " + folder, folder);
  if (name.starts_with("gs://")) return Fetched(key, "gcloud storage rsync --recursive " + name + " " + folder, folder);
  return "";
}

}  // namespace planwright
