/**
 * Loaded before a command (`--import`), for controls: writes what TROUBLE_SECRET names in a form of Node's, as a careless
 * line would, or breaks the process when it is at work.
 */
const { TROUBLE_SECRET, TROUBLE_FORM } = process.env

if (TROUBLE_SECRET === undefined) {
  setTimeout(() => {
    throw new Error('something that nobody expected')
  }, 2_000)
} else {
  process.stderr.write(
    `trouble: ${Buffer.from(`user:${TROUBLE_SECRET}`).toString(TROUBLE_FORM as BufferEncoding)}\n`,
  )
}
