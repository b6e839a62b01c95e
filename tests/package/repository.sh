#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# repository.sh PROJECT_FOLDER REPOSITORY
#
# Makes a bare repository whose only commit has the files of the project folder that git does not ignore. Its clones are
# what users get once the changes in the project folder are committed.
set -eu
project=$1 repository=$2

rm -rf "$repository"
git init --quiet --bare "$repository"
in_repository() {
  git --git-dir="$repository" --work-tree="$project" -c core.bare=false -c user.name=tests -c user.email=tests@localhost \
    -c commit.gpgsign=false "$@"
}
in_repository add --all
in_repository commit --quiet --message=sources
