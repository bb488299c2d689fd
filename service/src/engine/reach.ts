/** A reorganisation that goes deeper than this is not for a program to mend. */
export const REACH_BLOCKS = 200
