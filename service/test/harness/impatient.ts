/** For clients in tests: a network that is away is what a test looks at, and not to be waited for a minute. */
export const impatient = { retryDelayMsMax: 30_000 }
