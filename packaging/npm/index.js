'use strict';

const platform = `${process.platform}-${process.arch}`;

// path returns the absolute path of the program. It throws an Error of one line if the
// package with it is not there: npm leaves it out without a word if it is told to omit
// optional dependencies, or if the lock file was written where others are needed.
function path() {
  try {
    return require.resolve(`@cabrank/${platform}/bin/cabrank`);
  } catch {
    throw new Error(`the package @cabrank/${platform} is missing: install on this platform, with optional `
      + 'dependencies (npm install --include=optional), and if it stays away without node_modules and the lock file');
  }
}

module.exports = { path };
