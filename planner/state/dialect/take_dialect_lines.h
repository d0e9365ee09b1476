// Lines of a dialect that say which layers there are, and which keys may say what.
#pragma once

#include <optional>

#include "planner/state/dialect/dialect.h"

namespace planwright {

// "layers ..." or "blocks PATH"; none: the line begins otherwise, and nothing was taken.
std::optional<DialectLayers> TakeLayers(LineReader& line, const ModelStatement& statement);
// What follows `place`: one more layer of the blocks of the dialect, whose line `blocks` is before it.
void TakePlace(LineReader& line, const ModelStatement& statement, Dialect& dialect);
// What follows `insert`.
DialectInsert TakeInsert(LineReader& line, const ModelStatement& statement);
// "only", "nothing", "note", "copied" or "silent", which is added to the dialect. Whether it is such a line.
bool TakeRule(LineReader& line, const ModelStatement& statement, Dialect& dialect);

}  // namespace planwright
