// Names of what lies on no file system: repositories of the Hugging Face hub, and object stores. A run reads neither;
// what fetches them is said to whoever names one.
#pragma once

#include <string>

namespace planwright {

// Why a path of a recipe names no file of a mounted file system, for a message; empty: it may name one.
std::string NotMounted(const std::string& path);

// `organization/Model-8B`, `organization/C-RADIOv2`: two words, the second with a size in billions or millions, or with
// a capital and a hyphen. A folder may be called so, too.
bool LooksLikeHubName(const std::string& name);
// The same with any second word, none with a dot at the front. More folders than repositories are called so.
bool MayBeHubName(const std::string& name);

// The command that fetches what such a name names into a folder beside where it is called, and what to name then:
// "fetch it: hf download nvidia/Nano-8B --local-dir Nano-8B, and write from: Nano-8B"; empty for other names. `key`:
// the word of the recipe's key.
std::string HowToFetch(const std::string& key, const std::string& name);

}  // namespace planwright
