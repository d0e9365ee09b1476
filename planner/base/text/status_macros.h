// ABSL_RETURN_IF_ERROR and ABSL_ASSIGN_OR_RETURN. Abseil has them since 2026, in a header of this name; the Abseil of
// Debian and Ubuntu is older. Where it is newer, its own are taken.
#pragma once

#if __has_include("absl/status/status_macros.h")
#include "absl/status/status_macros.h"
#else
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the absl::Status `expression` from this function, unless it is ok:
//   ABSL_RETURN_IF_ERROR(MakeDirectories(folder));
#define ABSL_RETURN_IF_ERROR(expression)                                                                  \
  do {                                                                                                    \
    if (absl::Status planwright_status = (expression); !planwright_status.ok()) return planwright_status; \
  } while (false)

// Gives the value of the absl::StatusOr `expression` to `target`, or returns its status from this function:
//   ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
// These are several statements: not for the body of an `if` without braces. A type with a comma needs `auto`.
#define ABSL_ASSIGN_OR_RETURN(target, expression) \
  PLANWRIGHT_ASSIGN_OR_RETURN(target, expression, PLANWRIGHT_JOINED(planwright_value_, __LINE__))
#define PLANWRIGHT_ASSIGN_OR_RETURN(target, expression, value) \
  auto value = (expression);                                   \
  if (!value.ok()) return std::move(value).status();           \
  target = *std::move(value) /* NOLINT(bugprone-macro-parentheses) */
#define PLANWRIGHT_JOINED(left, right) PLANWRIGHT_JOINED_AS_THEY_ARE(left, right)
#define PLANWRIGHT_JOINED_AS_THEY_ARE(left, right) left##right

#endif
