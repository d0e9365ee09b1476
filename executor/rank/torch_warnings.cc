#include "executor/rank/torch_warnings.h"

#include <c10/util/Exception.h>

#include "executor/log/log.h"

namespace planwright::executor {
namespace {

class LoggingHandler : public c10::WarningHandler {
  void process(const c10::Warning& warning) override {
    const c10::SourceLocation& location = warning.source_location();
    LogWarningFrom(location.file, static_cast<int>(location.line), warning.msg());
    c10::WarningHandler::process(warning);  // prints it to stderr
  }
};

}  // namespace

void LogTorchWarnings() {
  static LoggingHandler handler;
  c10::WarningUtils::set_warning_handler(&handler);
}

}  // namespace planwright::executor
