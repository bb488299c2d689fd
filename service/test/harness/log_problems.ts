/** What a run has logged, and what a test knows of it. */
type Logged = {
  logLines(levelMin: number): readonly { readonly msg: string; readonly text: string }[]
  readonly secrets: ReadonlySet<string>
  readonly expectedErrors: ReadonlySet<string>
}

const ERROR = 50

/** Secrets that the log tells, and errors that no test expects. */
export function findLogProblems({ logLines, secrets, expectedErrors }: Logged): string[] {
  const leaks = logLines(0)
    .filter(({ text }) => [...secrets].some((secret) => text.includes(secret)))
    .map(({ msg }) => `the log tells a secret: ${msg}`)
  const errors = logLines(ERROR)
    .filter(({ text }) => ![...expectedErrors].some((expected) => text.includes(expected)))
    .map(({ text }) => `the log has an error that no test expects: ${text.slice(0, 800)}`)
  return [...leaks, ...errors]
}
