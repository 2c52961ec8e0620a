/**
 * Returns the absolute path of the program, which belongs to this platform.
 * Throws an Error of one line if the package with it is not installed.
 */
export function path(): string;
