// Ranks as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace planwright {

// "0-3, 8, 10-14 by 2". Of more than `most` runs those before the last are left out: "0, 2, ... 50".
std::string RanksText(const std::vector<int>& ranks, size_t most = 6);

// "4-7", "4": `count` consecutive ranks.
std::string RanksText(int first, int count);

}  // namespace planwright
