// Writers of Megatron's .idx and .bin for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planwright {

template <typename Number>
inline void Put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Files of documents that are lists of sequences, as Megatron's builder writes them.
struct TokenFiles {
  std::string idx, bin;
};
template <typename Number>
inline TokenFiles FilesOf(const std::vector<std::vector<std::vector<Number>>>& documents, int code) {
  std::string lengths, pointers, entries;
  TokenFiles files;
  int64_t sequences = 0;
  Put<int64_t>(entries, 0);
  for (const auto& document : documents) {
    for (const auto& sequence : document) {
      Put(lengths, static_cast<int32_t>(sequence.size()));
      Put(pointers, static_cast<int64_t>(files.bin.size()));
      for (Number token : sequence) Put(files.bin, token);
      ++sequences;
    }
    Put(entries, sequences);
  }
  files.idx = std::string("MMIDIDX\x00\x00", 9);
  Put<uint64_t>(files.idx, 1);
  files.idx += static_cast<char>(code);
  Put(files.idx, static_cast<uint64_t>(sequences));
  Put(files.idx, static_cast<uint64_t>(documents.size() + 1));
  files.idx += lengths + pointers + entries;
  return files;
}

}  // namespace planwright
