"""The samples of our mock source (docs/training/data.md#mock) in PyTorch, on any device: the same tokens and pixels."""
import torch

WORD = 0xffffffff


class Draws:
    """Numbers of Philox4x32-10 with a seed and a name (docs/training/layout_independence.md#draws)."""

    def __init__(self, seed, name):
        self.key, self.name = (seed & WORD, seed >> 32), 0xcbf29ce484222325
        for byte in name.encode():
            self.name = (self.name ^ byte) * 0x100000001b3 % 2**64

    def words(self, index):
        """Four words for each index. Words are int64, whose products wrap."""
        counter = [index & WORD, index >> 32, *(torch.full_like(index, word) for word in
                                                (self.name & WORD, self.name >> 32))]
        key = self.key
        for _ in range(10):
            left, right = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
            counter = [(right >> 32) & WORD ^ counter[1] ^ key[0], right & WORD,
                       (left >> 32) & WORD ^ counter[3] ^ key[1], left & WORD]
            key = ((key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD)
        return counter

    def uniform(self, index):
        low, high, _, _ = self.words(index)
        return ((high << 21) | (low >> 11)).double() / 2.0**53

    def normal(self, index):
        words = self.words(index)
        first, second = (((words[i + 1] << 21) | (words[i] >> 11)).double() for i in (0, 2))
        return torch.sqrt(-2 * torch.log((first + 1) / 2.0**53)) * torch.cos(2 * torch.pi * (second / 2.0**53))

    def choose(self, index, count):
        return torch.floor(self.uniform(index) * count).long()


class Samples:
    """Samples of one length. Without images a sample is texts alone; with them each has so many, each of a grid of
    patches that is drawn from `grids`, before the texts of their classes."""

    def __init__(self, vocabulary, sequence, text_tokens, image_token=None, images=0, grids=(), patch=16, factor=2,
                 classes=8, seed=1234, device="cpu"):
        self.vocabulary, self.sequence, self.text_tokens, self.classes = vocabulary, sequence, text_tokens, classes
        self.image_token, self.images, self.grids, self.patch, self.device = image_token, images, grids, patch, device
        self.factor = factor
        self.texts = images or max(1, sequence // text_tokens)
        self.pad = vocabulary - 2 if image_token == vocabulary - 1 else vocabulary - 1
        self.class_, self.grid, self.text, self.pattern, self.noise = (
            Draws(seed, f"mock.{name}") for name in ("class", "image_grid", "text", "pattern", "noise"))

    def indices(self, first, count):
        return torch.arange(first, first + count, device=self.device)

    def classes_of(self, number):
        return self.class_.choose(self.indices(number * self.texts, self.texts), self.classes)

    def grids_of(self, number):
        """Rows and columns of patches of each image of a sample."""
        chosen = self.grid.choose(torch.arange(number * self.images, (number + 1) * self.images), len(self.grids))
        return [self.grids[i] for i in chosen.tolist()]

    def tokens(self, number):
        """Ids, labels and loss mask of a sample, each [sequence]."""
        taken = [self.pad] if self.image_token is None else sorted((self.image_token, self.pad))
        index = self.classes_of(number)[:, None] * self.text_tokens + self.indices(0, self.text_tokens)
        text = self.text.choose(index.flatten(), self.vocabulary - len(taken))
        for token in taken:
            text += text >= token
        ids = torch.full([self.sequence + 1], self.pad, device=self.device)
        begin = sum(rows * columns for rows, columns in self.grids_of(number)) // self.factor**2
        end = begin + len(text)
        ids[begin:end] = text
        if begin:
            ids[:begin] = self.image_token
        mask = torch.zeros(self.sequence, device=self.device)
        mask[max(0, begin - 1):end - 1] = 1    # where the next token is text
        return ids[:-1], ids[1:], mask

    def patches(self, number):
        """The patches of each image of a sample, row by row, [patches, 3 patch^2] in fp64."""
        values = 3 * self.patch**2
        most = max(rows * columns for rows, columns in self.grids) * values
        found = []
        for i, (kind, (rows, columns)) in enumerate(zip(self.classes_of(number), self.grids_of(number))):
            noise = self.noise.normal(self.indices((number * self.images + i) * most, rows * columns * values))
            found.append(self.pattern.normal(kind * values + self.indices(0, values)) + 0.1 * noise.view(-1, values))
        return found

    def pixels(self, number):
        """The images of a sample, all of one size, [images, 3, height, width] in fp64."""
        found = []
        for patches, (rows, columns) in zip(self.patches(number), self.grids_of(number)):
            patches = patches.view(rows, columns, 3, self.patch, self.patch).permute(2, 0, 3, 1, 4)
            found.append(patches.reshape(3, rows * self.patch, columns * self.patch))
        return torch.stack(found)
