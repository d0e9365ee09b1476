// A log in the folder RUN/logs that takes a bounded share of the disk. When it is full, rank0003.log becomes
// rank0003.log.1, that one rank0003.log.2, and so on; the oldest is removed (docs/logs.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace planwright {

// "rank0003.log": what rank 3 reports. "rank0003.out": what it and its libraries print.
std::string RankLogName(int rank);
std::string RankOutputName(int rank);

// Not for several threads at once, and one process writes a log.
class LogFile {
 public:
  struct Limits {
    int64_t bytes = int64_t{16} << 20;  // of one file; a single line may be longer
    int old_files = 4;                  // kept besides the one that is written; at least 1
  };

  // Opens `folder`, and makes it if it does not exist; the file is made by Open or the first Write. From then on the
  // folder may be renamed, as it is when a newer life of the run begins: all files stay in it.
  LogFile(const std::string& folder, std::string name, Limits limits);
  LogFile(const std::string& folder, std::string name) : LogFile(folder, std::move(name), Limits()) {}
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // That of WriteFailed (file_io.h), with the path, if the file cannot be made. It goes on behind what the file has
  // already.
  absl::Status Open();
  // Adds a line (or several), given without the last line break. When Write returns, the line is in the file, and no
  // death of the process takes it back. If it cannot be written, it is lost, the next line that can be written is
  // preceded by a note that says how many are missing and why, and the caller goes on.
  void Write(std::string_view line);

  int64_t lost() const { return lost_; }                   // calls of Write whose line is not in the file
  const std::string& problem() const { return problem_; }  // why the last of them; empty: none
  const std::string& path() const { return path_; }        // as it was when the folder was opened

 private:
  bool WriteAll(std::string_view bytes);
  void Rotate();
  void Note(int error);

  const std::string name_, path_;
  const Limits limits_;
  int folder_ = -1, file_ = -1;
  int folder_error_ = 0;
  int64_t size_ = 0;
  bool torn_ = false;   // the file ends within a line
  bool moved_ = false;  // the full file has its new name, but the next one could not be made yet
  int64_t lost_ = 0, noted_ = 0;
  std::string problem_;
};

}  // namespace planwright
