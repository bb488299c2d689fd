import { CommandRefused } from '../command_refused.ts'

/** Of what is printed: whether it got there. */
type Output = {
  /** Throws CommandRefused when something is lost that somebody waits for. */
  refuseLoss(): Promise<void>
  /** Ends when the text is taken, which by a pipe may last: whether there is still somebody who takes more. */
  write(text: string): Promise<boolean>
}

/**
 * To be called before anything is printed. Left alone, a line that cannot be written is told nobody, and the next one ends the process
 * wherever it stands: a sandbox would leave its nodes behind.
 */
export function watchOutput(): Output {
  let loss: NodeJS.ErrnoException | undefined
  process.stdout.on('error', (error) => {
    loss ??= error
  })
  // Where that cannot be told either, there is nobody to tell.
  process.stderr.on('error', () => {})
  return {
    write: async (text) => {
      await new Promise((resolve) => process.stdout.write(text, resolve))
      return loss === undefined
    },
    refuseLoss: async () => {
      // Comes after the last line, so that what became of that is known.
      await new Promise((resolve) => process.stdout.write('', resolve))
      // Whoever read left by their own choice, as `head` does.
      if (loss === undefined || loss.code === 'EPIPE') return
      throw new CommandRefused(
        `Not everything could be printed (${loss.message}). What the command did is done; what it shows only once has to be made anew.`,
      )
    },
  }
}
