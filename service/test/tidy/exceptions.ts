/** A place that breaks a rule on purpose. One that no longer breaks it fails the test, so that the list stays true. */
export type Exception = { readonly path: string; readonly reason: string }

export const exceptions: Readonly<Record<string, readonly Exception[]>> = {
  'money stays out of floating point': [],
  'time comes from the clock': [
    {
      path: 'service/src/http/answers/answers.ts',
      reason:
        'measures how long a request took, for the log line and the histogram; nothing is decided by it',
    },
    {
      path: 'service/src/chains/node_line.ts',
      reason: 'limits how long a node may take, in real time; AbortSignal.timeout cannot be taken back',
    },
  ],
}
