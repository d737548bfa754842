// The bytes of a variable in a cubin, which is an ELF file.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gyre_test {

/// The initial content of the variable with this mangled name; throws where `file` has none. Refers to
/// `file`.
inline std::span<const std::byte> elf_symbol(std::string_view file, std::string_view name) {
  const auto at = [file]<class T>(T value, size_t offset) {
    if (offset > file.size() || file.size() - offset < sizeof value)
      throw std::runtime_error("the ELF file is cut off");
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
  };
  const auto header = at(Elf64_Ehdr{}, 0);
  const auto section = [&](size_t n) { return at(Elf64_Shdr{}, header.e_shoff + n * header.e_shentsize); };
  for (size_t n = 0; n < header.e_shnum; ++n) {
    const Elf64_Shdr symbols = section(n);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(symbols.sh_link);
    for (size_t offset = 0; offset < symbols.sh_size; offset += sizeof(Elf64_Sym)) {
      const auto symbol = at(Elf64_Sym{}, symbols.sh_offset + offset);
      if (name != file.data() + names.sh_offset + symbol.st_name) continue;
      const Elf64_Shdr home = section(symbol.st_shndx);
      const std::string_view content = file.substr(home.sh_offset + symbol.st_value, symbol.st_size);
      return std::as_bytes(std::span(content));
    }
  }
  throw std::runtime_error("the ELF file has no symbol " + std::string(name));
}

}  // namespace gyre_test
