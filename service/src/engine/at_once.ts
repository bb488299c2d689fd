/**
 * Works on all items, at most so many at the same time; answers in the order of the items. After a failure no other
 * item is begun, what was begun is waited for, and the failure is thrown.
 */
export async function atOnce<Item, Answer>(
  itemsMax: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  const failures: unknown[] = []
  let next = 0
  const worker = async () => {
    for (let index = next++; index < items.length && failures.length === 0; index = next++) {
      try {
        answers[index] = await work(items[index] as Item)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(itemsMax, items.length) }, worker))
  if (failures.length > 0) throw failures[0]
  return answers
}
