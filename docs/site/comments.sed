# Headers as doxygen reads them. The comment that one opens with describes the file; what it indents is code.
1 i\
/// @file
1,/^#pragma once/ s|^//(  .*)|///    \1|
t
1,/^#pragma once/ s|^// ?|/// |
# All is in this namespace: the pages say it once.
/^namespace penstock \{$/d
/^\}  \/\/ namespace penstock$/d
# Designated initializers: Sphinx's parser of C++ knows none.
s| += \{\..*\};|;|
s|([a-z_])\{\..*\};|\1;|
# What a contract names begins a paragraph of its own, also within a line.
s|^( *///) (.*[.;]) REQUIRES: +(.)|\1 \2\n\1 @par REQUIRES\n\1 \3|
s/^( *\/\/\/) (Cost|Errors|Collective|CUDA|CPU): +(.)/\1 @par \2\n\1 \u\3/
s|^( */// )REQUIRES: +|\1@par REQUIRES\n\1|
