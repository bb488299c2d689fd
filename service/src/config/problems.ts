/** One thing wrong with the environment: which variable, and what to do about it. */
export type Problem = { readonly variable: string; readonly message: string }

/** Every problem at once, so that a configuration is repaired in one round. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    const lines = problems.map(({ variable, message }) => `  ${variable}: ${message}`)
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
    super([`The configuration has ${count}:`, ...lines, 'See docs/operating/configuration.md.'].join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}
