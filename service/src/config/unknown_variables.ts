import type { Problem } from './problems.ts'
import { type Shape, variableNames, variables } from './variables.ts'

/** A misspelt variable would silently leave its default in force, so every `CAMBIST_*` has to be one we know. */
export function findUnknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  shape: Shape,
): Problem[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('CAMBIST_') && env[name] !== undefined)
    .flatMap((name): Problem[] => {
      const known = Object.hasOwn(variables, name) ? variables[name as keyof typeof variables] : undefined
      if (known === undefined) return [{ variable: name, message: describeUnknown(name) }]
      if (known.shapes.includes(shape)) return []
      const message =
        shape === 'sandbox'
          ? 'the sandbox brings its own and does not use it; unset it'
          : 'is for the sandbox only; unset it'
      return [{ variable: name, message }]
    })
}

function describeUnknown(name: string): string {
  const [nearest] = variableNames
    .filter((candidate) => candidate.startsWith('CAMBIST_'))
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((left, right) => left.distance - right.distance)
  const isClose = nearest !== undefined && nearest.distance <= Math.max(3, name.length * 0.3)
  return isClose ? `is not known; did you mean ${nearest.candidate}?` : 'is not known; remove it'
}

/** Letters to insert, remove or change (Levenshtein). */
export function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= right.length; column += 1) {
      const change = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1)
      current.push(Math.min(change, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[right.length] ?? 0
}
